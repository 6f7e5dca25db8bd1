//! How a table of kernels is put together.

/// The table of one instruction set: every entry is a shared body, compiled with the named features.
///
/// What differs is named: `rows`, the matrix-vector product; `tile`, a panel times a tile of tokens, which takes `run`
/// consecutive elements of a row at once; the unpacker; and the float registers. A function `peak` stands beside it.
macro_rules! kernels {
    (
        $name:literal,
        $features:literal,
        rows: $rows:ident,
        tile: $tile:ident,
        run: $run:literal,
        unpack: $unpack:ty,
        lanes: $lanes:ty
    ) => {
        pub(super) static KERNELS: Kernels = Kernels {
            name: $name,
            quantize,
            gemv,
            gemm,
            float,
            attention: attend,
            rms_norm,
            layer_norm,
            gate,
            activate,
            peak,
        };

        #[target_feature(enable = $features)]
        fn quantize(tile: &mut ActTileMut<'_>, x: &[f32], width: usize) {
            tile.quantize(x, width);
        }

        /// # Safety
        /// As [`Kernels::gemv`].
        #[target_feature(enable = $features)]
        unsafe fn gemv(m: &Matrix<'_>, rows: Range<usize>, a: &ActMatrix, out: Output) {
            // SAFETY: forwarded contract; the features are enabled here.
            with_format!(m.ty, F => unsafe { $rows::<F>(m, rows, a, out) });
        }

        /// # Safety
        /// As [`Kernels::gemm`].
        #[target_feature(enable = $features)]
        unsafe fn gemm(m: &Matrix<'_>, rows: Range<usize>, a: &ActMatrix, out: Output, panel: &mut Panel) {
            for row in rows.clone().step_by(PANEL_ROWS) {
                let valid = PANEL_ROWS.min(rows.end - row);
                // SAFETY: the features are enabled here.
                with_format!(m.ty, F => unsafe { panel.fill::<$unpack, F, $run>(m, row) });
                for t in 0..a.tiles() {
                    let sums = with_format!(m.ty, F => $tile::<F>(panel, &a.tile(t)));
                    for (c, sums) in (t * GEMM_TILE..a.columns()).zip(&sums) {
                        // SAFETY: the caller owns these rows of `out`.
                        unsafe { out.part(c, row, valid) }.copy_from_slice(&sums[..valid]);
                    }
                }
            }
        }

        /// # Safety
        /// As [`Kernels::float`].
        #[target_feature(enable = $features)]
        unsafe fn float(m: &Matrix<'_>, rows: Range<usize>, x: &[f32], out: Output, scratch: &mut Vec<f32>) {
            // SAFETY: forwarded contract.
            unsafe { float::product::<$lanes>(m, rows, x, out, scratch) }
        }

        /// # Safety
        /// As [`Kernels::attention`].
        #[target_feature(enable = $features)]
        unsafe fn attend(
            a: &Attention<'_>,
            head: usize,
            tokens: Range<usize>,
            out: Output,
            scratch: &mut AttentionScratch,
        ) {
            // SAFETY: forwarded contract; the features are enabled here.
            unsafe { attention::attention::<$lanes, true>(a, head, tokens, out, scratch) }
        }

        #[target_feature(enable = $features)]
        fn rms_norm(x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
            elementwise::rms_norm::<true>(x, weight, eps, out);
        }

        #[target_feature(enable = $features)]
        fn layer_norm(x: &mut [f32], weight: &[f32], bias: &[f32], eps: f32) {
            elementwise::layer_norm::<true>(x, weight, bias, eps);
        }

        #[target_feature(enable = $features)]
        fn gate(f: Activation, gate: &mut [f32], up: &[f32]) {
            elementwise::gate::<true>(f, gate, up);
        }

        #[target_feature(enable = $features)]
        fn activate(f: Activation, x: &mut [f32]) {
            elementwise::activate::<true>(f, x);
        }
    };
}
pub(super) use kernels;
