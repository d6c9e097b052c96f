"""The HTTP door: JSON for people who want no Kafka client.

    session.py    bytes to requests and answers to bytes, without I/O (h11 knows HTTP's rules)
    door.py       from a request to its answer: who asks, which route, what it says, what it is refused with
    routes.py     how a route is declared, and found by its path
    table.py      all routes
    decoding.py   path, query, form and JSON to the struct that a route asks for
    openapi.py    the document that describes all this, made of the same structs

A handler is `async def handle(request, call)` with structs for what it is asked and what it answers. It awaits only
`Pending` values, as every handler does, and does its work through the operations that Kafka's door uses.
"""
