-- The latest API requests of each key, for the merchant who looks for a mistake of a program.
--
-- One row for each key, which is replaced as a whole: a row for each request would cost more than
-- the request. `requests` is a JSON array, the oldest first; its bound keeps a row small, whatever
-- a program does. `written_ms` is when a process last wrote the row. Nothing else depends on it: a
-- service that is killed loses the requests that it has not yet written.
CREATE TABLE key_requests (
    key_id TEXT PRIMARY KEY REFERENCES api_key (id) ON DELETE CASCADE,
    written_ms BIGINT NOT NULL,
    requests TEXT NOT NULL CHECK (LENGTH(requests) <= 32768)
);
