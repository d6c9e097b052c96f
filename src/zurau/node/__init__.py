"""The only room with sockets, files, threads and clocks.

Nouns: *acceptor* (lets clients in, for any protocol), *listener* (counts Kafka's, and what they hold), *connection*
(one client's bytes, in order), *turns* (the loop's time, shared out), *slow readers* and *departed* clients,
*descriptors*, *disk*, *clock*, *threads* (for what blocks), *settings*, *run* (start, serve, stop).

Laws: nothing that can block runs on the loop, and nothing holds it for long; a connection's responses leave in the
order of its requests; what it holds ends with it; whatever a client sends, only its own connection suffers; everything
else in Zurau is handed these through `ports`.
"""
