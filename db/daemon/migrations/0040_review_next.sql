-- What the approval of a review leads to, as JSON; NULL until its agents have been asked what they write.
ALTER TABLE reviews ADD COLUMN next TEXT;
