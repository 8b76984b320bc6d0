#if Service
import HoldfastFormats
import HoldfastService
import Logging
import NIOPosix

extension Notices<EndingTrust> {
  /// The lines that warn before devices no longer trust the key that signs, because it was introduced to them for a time.
  static func aboutTrust(in fleet: Fleet, threads: NIOThreadPool, logger: Logger) -> Notices {
    Notices(threads: threads, logger: logger, finding: { try fleet.endingTrust() }) { trust, logger in
      let time = Timestamp(unixSeconds: trust.until)
      let others = trust.count == 1 ? "" : " and \(trust.count - 1) more"
      logger.warning(
        "the trust in the key that signs, \(hexadecimal(trust.key)), ends at \(time) at \(trust.first)\(others)",
        metadata: [
          "remedy": "make a new key and introduce it before the present one signs no more: rotate-key, introduce-key"
        ])
    }
  }
}
#endif
