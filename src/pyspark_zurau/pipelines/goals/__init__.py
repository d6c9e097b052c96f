"""Football: an ordered timeline of each match, and the league table as it stands."""
