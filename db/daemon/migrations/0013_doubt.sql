-- Outside writes in doubt. A receipt may also be `presumed`: the other system did not show the write when the settling
-- time was over. `boot` and `ended` say when the request ended, by a clock that counts from the start of the machine;
-- `presumed_at` when its absence was first concluded; `sent_first` when what is presumed absent was sent; `request` what
-- was sent, where the entry says it; `copies` what else carries the mark of the entry, as a JSON list of {id, url}.

ALTER TABLE receipts ADD COLUMN boot TEXT;
ALTER TABLE receipts ADD COLUMN ended INTEGER;
ALTER TABLE receipts ADD COLUMN presumed_at INTEGER;
ALTER TABLE receipts ADD COLUMN sent_first INTEGER;
ALTER TABLE receipts ADD COLUMN request TEXT;
ALTER TABLE receipts ADD COLUMN copies TEXT;
