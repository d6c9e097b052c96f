"""The only room with sockets, files, threads and clocks.

Nouns: *listener* (accepts), *connection* (one client's bytes, in order), *disk*, *clock*, *threads* (for what blocks),
*settings*, *run* (start, serve, stop).

Laws: nothing that can block runs on the loop; a connection's responses leave in the order of its requests; whatever a
client sends, only its own connection suffers; everything else in Zurau is handed these through `ports`.
"""
