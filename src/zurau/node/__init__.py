"""The only room with sockets, files, threads and clocks.

Nouns: *acceptor* (lets clients in), *listener* (one door: where it is and what is spoken there), *connections*
(everybody, and what they hold), *connection* (one client's bytes, whatever the protocol), *turns* (the loop's time,
shared out), *slow readers* and *closed peers*, *descriptors*, *disk*, *clock*, *threads* (for what blocks), *settings*,
*run* (start, serve, stop), *broken* (what happens when an invariant is).

Laws: nothing that can block runs on the loop, and nothing holds it for long; a connection's responses leave in the
order of its requests; what it holds ends with it; whatever a client sends, only its own connection suffers; everything
else in Zurau is handed these through `ports`.
"""
