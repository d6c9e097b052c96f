"""What each question means: one folder a protocol, one file a question.

A handler is `async def handle(request, call) -> response`. It translates a wire message into a command or a read, waits
for nothing but `Pending` values, and turns `Refused` into the protocol's error codes. Laws: wire messages stop here; a
handler never touches a socket, file or clock; one bad item of a request never spoils the others.
"""
