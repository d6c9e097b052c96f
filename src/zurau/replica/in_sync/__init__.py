"""In-sync mode: a controller names the leader and the in-sync set, and all of the set commit."""
