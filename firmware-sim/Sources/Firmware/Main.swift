import HoldfastBearSSL
import HoldfastBoard
import HoldfastCore
import HoldfastFirmware

enum Simulation: FirmwareEnvironment {
  typealias Flash = BoardFlash
  typealias Crypto = BearSSLCryptography
  typealias Key = SoftwareAgreementKey
  typealias Random = SeededRandom
  typealias Time = BoardClock
  typealias Hardware = SerialBoard
  typealias Machine = LockActuator<BoardLock>
}
typealias Device = FirmwareDevice<Simulation>

/// Serves provers without end. If the device cannot start or a round cannot begin, it denies everything.
@c(firmware_main)
func main() -> Never {
  Console.start()
  let clock = BoardClock()
  do throws(FirmwareFault) {
    try makeDevice(clock)
    try unsafe device.start()
    unsafe device.run()
  } catch {
    var board = SerialBoard(clock: clock)
    board.notify(.fault(error))
  }
  deny(clock)
  stop()
}

/// Reports a fault. C's fault handlers call it.
@c(board_fault)
func fault(frame: UnsafePointer<UInt32>, exception: UInt32) -> Never {
  unsafe reportFault(frame: frame, exception: exception)
}

/// Reads the device's parts from flash and makes ``device``. It is not inlined, so that its stack is free again while the
/// device serves.
@inline(never)
private func makeDevice(_ clock: BoardClock) throws(FirmwareFault) {
  let entropy = SimulatedEntropy.take()
  var cryptography = BearSSLCryptography()
  var parts: Parts? = try Parts.read(
    BoardFlash(), using: &cryptography,
    key: { (scalar) throws(CryptographyFailure) in try SoftwareAgreementKey(scalar: scalar.copy()) },
    random: { (secret, bootCount) throws(CryptographyFailure) in
      try SeededRandom(entropy: entropy, deviceSecret: secret, bootCount: bootCount)
    })
  unsafe boardClock = clock
  unsafe assemble = assembledDevice
  unsafe withUnsafeMutablePointer(to: &parts) { (parts) in
    unsafe deviceParts = parts
    unsafe touch(&device)
  }
}

/// Names a global variable, which makes Swift initialise it.
private func touch<Value: ~Copyable>(_ value: inout Value) {}

@inline(never)
private func deny(_ clock: BoardClock) {
  var denied = DeniedDevice(board: SerialBoard(clock: clock), clock: clock)
  denied.run()
}

private typealias Parts = FirmwareParts<BoardFlash, SoftwareAgreementKey, SeededRandom>
nonisolated(unsafe) private var deviceParts: UnsafeMutablePointer<Parts?>? = nil
nonisolated(unsafe) private var boardClock: BoardClock? = nil

/// The device, which is initialised in its final place when it is first named. It is too large for the stack.
nonisolated(unsafe) private var device = unsafe assemble()

/// The function that makes ``device``. It is called through a variable: Swift 6.3 would otherwise try to evaluate the
/// initialiser statically and inline its whole call tree.
nonisolated(unsafe) private var assemble: () -> Device = assembledDevice

private func assembledDevice() -> Device {
  unsafe Device(
    deviceParts!.pointee.take()!, board: SerialBoard(clock: boardClock!), machine: LockActuator(BoardLock()),
    clock: boardClock!, cryptography: { BearSSLCryptography() })
}
