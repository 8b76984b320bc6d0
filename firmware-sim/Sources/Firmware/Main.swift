import CFirmware
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
  precondition(MemoryLayout<Device>.size <= FIRMWARE_BYTE_COUNT)
  let device = unsafe UnsafeMutableRawPointer(firmware_memory()).assumingMemoryBound(to: Device.self)
  unsafe device.initialize(
    to: try Device.start(
      flash: BoardFlash(), board: SerialBoard(clock: clock), machine: LockActuator(BoardLock()), clock: clock,
      cryptography: { BearSSLCryptography() },
      key: { (scalar, _) throws(CryptographyFailure) in try SoftwareAgreementKey(scalar: scalar.copy()) },
      random: { (secret, bootCount) throws(RandomFailure) in
        do throws(CryptographyFailure) {
          return try SeededRandom(entropy: entropy, deviceSecret: secret, bootCount: bootCount)
        } catch { throw RandomFailure() }
      }))
  unsafe device.pointee.run()
}
