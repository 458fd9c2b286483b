"""What a run of the models must show before a repair is written, and what runs say about findings."""
