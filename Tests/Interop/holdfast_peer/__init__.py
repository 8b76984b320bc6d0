"""An independent Holdfast peer: measurement, tokens and session, written only from the specification.

It shares no code with the Swift package, so that a mistake has to be made twice before it goes unseen. It makes the
test vectors and stands at either end of the wire in the interoperability tests. It is not constant-time: a test peer.
"""
