"""HCI over a byte stream: each packet begins with a byte that says what it is.

Source: Bluetooth Core Specification, Volume 4, Part A, section 2 (UART transport), and Part E, sections 5.4 (packets), 7.7.3 and 7.7.19.
"""

COMMAND, ACL, SYNCHRONOUS, EVENT, ISOCHRONOUS = range(1, 6)
# By kind: bytes before the payload, where among them its length is, how many bytes and which bits of them the length is.
HEADERS = {
    COMMAND: (4, 3, 1, 0xFF),
    ACL: (5, 3, 2, 0xFFFF),
    SYNCHRONOUS: (4, 3, 1, 0xFF),
    EVENT: (3, 2, 1, 0xFF),
    ISOCHRONOUS: (5, 3, 2, 0x3FFF),
}
CONNECTION_COMPLETE, NUMBER_OF_COMPLETED_PACKETS = 0x03, 0x13
HANDLE_BITS = 0x0FFF


class NotH4(Exception):
    """The stream has lost its place."""


def take_packets(buffer):
    """Takes the whole packets off the front of a bytearray."""
    while (size := packet_size(buffer)) and size <= len(buffer):
        yield bytes(buffer[:size])
        del buffer[:size]


def packet_size(buffer):
    """Bytes of the packet at the front, or None as long as its header is not whole."""
    if not buffer:
        return None
    if buffer[0] not in HEADERS:
        raise NotH4(buffer[:8].hex())
    header, offset, width, bits = HEADERS[buffer[0]]
    if len(buffer) < header:
        return None
    return header + (int.from_bytes(buffer[offset : offset + width], "little") & bits)


def is_completion(packet):
    """Whether a controller says by it that it has sent an ACL packet."""
    return packet[0] == EVENT and packet[1] == NUMBER_OF_COMPLETED_PACKETS


def is_vain_call(packet):
    """Whether a controller says by it that a host did not answer its call, or refused it, over BR/EDR."""
    return packet[0] == EVENT and packet[1] == CONNECTION_COMPLETE and packet[3] != 0


def completion(packet):
    """The event by which a controller says that it has sent an ACL packet."""
    handle = int.from_bytes(packet[1:3], "little") & HANDLE_BITS
    return bytes((EVENT, NUMBER_OF_COMPLETED_PACKETS, 5, 1)) + handle.to_bytes(2, "little") + (1).to_bytes(2, "little")
