import HoldfastBearSSL
import HoldfastBoard
import HoldfastCore
import HoldfastFirmware

typealias Device = FirmwareDevice<
  BoardFlash, BearSSLCryptography, SoftwareAgreementKey, SeededRandom, BoardClock, SerialBoard, LockActuator<BoardLock>
>

/// Serves provers for ever; denies them everything where it cannot.
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

/// What C's fault handlers end in.
@c(board_fault)
func fault(frame: UnsafePointer<UInt32>, exception: UInt32) -> Never {
  unsafe reportFault(frame: frame, exception: exception)
}

/// What it needs of the stack is free again before the device is served.
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

/// Makes a global variable that is made when it is first named.
private func touch<Value: ~Copyable>(_ value: inout Value) {}

@inline(never)
private func deny(_ clock: BoardClock) {
  var denied = DeniedDevice(board: SerialBoard(clock: clock), clock: clock)
  denied.run()
}

private typealias Parts = FirmwareParts<BoardFlash, SoftwareAgreementKey, SeededRandom>
nonisolated(unsafe) private var deviceParts: UnsafeMutablePointer<Parts?>? = nil
nonisolated(unsafe) private var boardClock: BoardClock? = nil

/// Made where it stays, when it is first named: too large for the stack.
nonisolated(unsafe) private var device = unsafe assemble()

/// A variable, because Swift 6.3 writes out all that it can call where a global is made.
nonisolated(unsafe) private var assemble: () -> Device = assembledDevice

private func assembledDevice() -> Device {
  unsafe Device(
    deviceParts!.pointee.take()!, board: SerialBoard(clock: boardClock!), machine: LockActuator(BoardLock()),
    clock: boardClock!, cryptography: { BearSSLCryptography() })
}
