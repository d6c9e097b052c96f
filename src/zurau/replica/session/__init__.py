"""Fetch sessions: one between every two brokers and direction, for all their partitions (KIP-227 in spirit).

Most of a fetch is what was said before. So a request names only the partitions whose fetch is another one than last
time, and a response only those with news. **Absent means unchanged**: a partition that a request does not name asks the
same again; one that a response does not name gets the same answer, nothing new. An idle pair of brokers exchanges one
empty request and one empty response in a while, however many partitions they share.

    client.py      the follower's side: what its replicas ask, and what they are answered
    server.py      the leader's side
    sessions.py    both sides of one broker with every other broker, and when something is due

A request without news waits at the server for some. What comes up at the client meanwhile, say a follower that has
flushed what it got, does not wait with it: it goes in a second request, and the first is answered at once. No more than
two are open, so that what comes up in one round trip travels together.

Absence is only understood while both sides mean the same by "last time":

- A session has two random ids, one from either side, and its requests have numbers. A response to any other request, or
  of any other session, says nothing. One id would not do: a first request that arrives a second time, after the server
  has forgotten the session, would bring back what was asked then. Requests and responses arrive in order, or the
  session begins anew.
- A fetch *stands* from when a request named it until it is answered with news or refused: that uses it up, and its
  partition asks nothing until a request names it again. News of a higher high watermark alone do not use it up.
- A replica whose role changes, or that fails, or that turns to another leader, is evicted from the session at once, by
  itself, while the others stay: a broker that is alive must not make a dead partition look alive.

Unchanged fetches and answers are not delivered to the replicas, or an idle partition would cost something on every
round. A replica is told once when its session begins to speak for the other side (*quiesced*), and once when that has
ended and until when it was true (*unquiesced*): these are the `notices`, delivered before anything else.

Votes and the beginnings and ends of epochs travel along, and are never left out.
"""
