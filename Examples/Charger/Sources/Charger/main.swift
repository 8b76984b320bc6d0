import Glibc
import HoldfastDevice

// Charger FOLDER: serves the device in FOLDER at the packet socket that systemd passes, which is always descriptor 3, one peer
// after the other. In the unit of the socket: ListenSequentialPacket=@charger
guard CommandLine.arguments.count == 2 else { fatalError("usage: Charger FOLDER") }
let point = ChargingPoint()
let device = try OpenDevice(at: CommandLine.arguments[1]) { print($0) }
while true {
  let peer = accept(3, nil, nil)
  guard peer >= 0 else { fatalError("descriptor 3 is not a socket that accepts peers") }
  try device.serve(PacketSocket(peer), actuator: point)
}
