"""What both modes share: events, effects and messages, a follower, a leader that serves fetches, and their state."""
