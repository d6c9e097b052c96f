"""Kafka's protocol: messages declared once, codecs compiled from the declarations.

schema      the vocabulary of declarations: field types, versions, tags
messages/   the declarations, one file for each API
layout      what one version of a declaration looks like on the wire
decoders    writes the decoder of a layout; `encoders` its encoder; `source` turns both into functions
codec       what others call: decode and encode a message
frames      what goes over a connection: size, header, message
apis        which APIs are served, in which versions
"""
