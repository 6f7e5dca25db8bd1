-- Why a content, as its hash names it, gives no text. It stays while the file waits to be read again, and the same content
-- is not parsed a second time by the same extractors.
ALTER TABLE documents ADD COLUMN verdict INTEGER;
ALTER TABLE documents ADD COLUMN verdict_reason TEXT;
