"""Consumer groups: being a member, how far a group got, and looking at groups from outside.

- `consumer`, `membership`, `assignment`: reading as a member.
- `offsets`: what groups have committed.
- `admin`: who is in them, and moving them elsewhere.
"""
