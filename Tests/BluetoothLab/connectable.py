"""How long an adapter was not connectable by Low Energy after a link had ended, by what `btmon -w` has recorded of it.

An adapter advertises from the moment at which its controller has done "LE Set Extended Advertising Enable" or "LE Set Advertising Enable" to
that at which it is told to stop, or somebody connects: a controller ends the advertisement that a host connects to. Where it has several,
and does not say which, all count as ended.

Source: Bluetooth Core 5.4, volume 4 part E, sections 7.8.9, 7.8.56, 7.8.60, 7.7.65.1, 7.7.65.10 and 7.7.65.18; BlueZ, doc/btsnoop.txt.
"""

import struct

import btsnoop

COMMAND, EVENT = 2, 3
ENABLE, EXTENDED_ENABLE, REMOVE, CLEAR, RESET = 0x200A, 0x2039, 0x203C, 0x203D, 0x0C03
DISCONNECTED, COMPLETE, LOW_ENERGY = 0x05, 0x0E, 0x3E
LINKED, ENHANCED_LINKED, TERMINATED = 0x01, 0x0A, 0x12
PERIPHERAL = 1
# The one that there is without extended advertising.
LEGACY = -1


class Adapter:
    """What it advertises, and since when it has to be connectable again."""

    def __init__(self):
        self.sets, self.links, self.asked = set(), set(), None
        self.ended, self.gaps = None, []

    def take(self, kind, packet, microseconds):
        if kind == COMMAND:
            (code,) = struct.unpack_from("<H", packet)
            self.asked = code, packet[3:]
        elif kind == EVENT:
            self.take_event(packet[0], packet[2:], microseconds)
        if self.ended is not None and self.sets:
            self.gaps.append((microseconds - self.ended) / 1000)
            self.ended = None

    def take_event(self, code, parameters, microseconds):
        if (
            code == COMPLETE
            and self.asked
            and parameters[1:3] == struct.pack("<H", self.asked[0])
            and parameters[3] == 0
        ):
            self.done(*self.asked)
        elif code == DISCONNECTED and parameters[0] == 0:
            (handle,) = struct.unpack_from("<H", parameters, 1)
            if handle in self.links:
                self.links.discard(handle)
                self.ended = microseconds
        elif (
            code == LOW_ENERGY
            and parameters[0] in (LINKED, ENHANCED_LINKED)
            and parameters[1] == 0
            and parameters[4] == PERIPHERAL
        ):
            self.links.add(struct.unpack_from("<H", parameters, 2)[0])
            # One could be connected to: nobody waits any more.
            self.sets, self.ended = set(), None

    def done(self, code, parameters):
        if code == EXTENDED_ENABLE:
            is_on, count = parameters[:2]
            named = {parameters[2 + 4 * number] for number in range(count)}
            self.sets = self.sets | named if is_on else self.sets - named if count else set()
        elif code == ENABLE:
            self.sets = {LEGACY} if parameters[0] else set()
        elif code == REMOVE:
            self.sets = self.sets - {parameters[0]}
        elif code in (CLEAR, RESET):
            self.sets = set()


def gaps(recorded):
    """Milliseconds from the end of each link that another host had begun to the moment at which the adapter could be connected to; what has
    not ended is None."""
    adapter = Adapter()
    for kind, packet, microseconds in btsnoop.timed_records(recorded):
        adapter.take(kind, packet, microseconds)
    return adapter.gaps + ([None] if adapter.ended is not None else [])
