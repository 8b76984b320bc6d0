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
  let entropy = SimulatedEntropy.take()
  do throws(FirmwareFault) {
    try serve(clock, entropy)
  } catch {
    var board = SerialBoard(clock: clock)
    board.notify(.fault(error))
  }
  var denied = DeniedDevice(board: SerialBoard(clock: clock), clock: clock)
  denied.run()
  stop()
}

/// Returns when it can serve no more.
private func serve(_ clock: BoardClock, _ entropy: borrowing Secret<64>) throws(FirmwareFault) {
  var cryptography = BearSSLCryptography()
  var parts: Parts? = try Parts.read(
    BoardFlash(), using: &cryptography,
    key: { (scalar) throws(CryptographyFailure) in try SoftwareAgreementKey(scalar: scalar.copy()) },
    random: { (secret, bootCount) throws(CryptographyFailure) in
      try SeededRandom(entropy: entropy, deviceSecret: secret, bootCount: bootCount)
    })
  unsafe boardClock = clock
  unsafe withUnsafeMutablePointer(to: &parts) { unsafe deviceParts = $0 }
  try unsafe device.start()
  unsafe device.run()
}

private typealias Parts = FirmwareParts<BoardFlash, SoftwareAgreementKey, SeededRandom>
nonisolated(unsafe) private var deviceParts: UnsafeMutablePointer<Parts?>? = nil
nonisolated(unsafe) private var boardClock: BoardClock? = nil

/// Made where it stays, when it is first named: too large for the stack.
nonisolated(unsafe) private var device = unsafe Device(
  deviceParts!.pointee.take()!, board: SerialBoard(clock: boardClock!), machine: LockActuator(BoardLock()),
  clock: boardClock!,
  cryptography: { BearSSLCryptography() })
