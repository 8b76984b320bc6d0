import Glibc
import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastMeasurement
import HoldfastOpenSSL

/// The source of what a prover reads of its host to check an enrolment's terms and the rules about the posture, and to notice changes. Tests give another
/// one.
package struct HostSource: Sendable {
  /// Returns the present time of the host's clock, in Unix seconds; nil if there is no clock.
  package var unixSeconds: @Sendable () -> UInt64?
  /// Returns the present start of the host and the time since then; nil if the kernel does not say.
  package var uptime: @Sendable () -> Uptime?
  /// Returns the bytes of `/etc/os-release`; nil if it cannot be read.
  package var release: @Sendable () -> [UInt8]?
  /// Returns the posture of the host and this process.
  package var posture: @Sendable () -> Posture = { Posture.ofThisHost() }
  /// Returns a digest by which the secret of this host is known again; nil if there is none that can be read.
  package var secretMark: @Sendable () -> Digest? = {
    guard let secret = try? HostSecret(HostFiles()).read() else { return nil }
    var cryptography = OpenSSLCryptography()
    var hash = cryptography.sha256()
    hash.append(domain: "holdfast/1 mark of a host secret")
    secret.withBytes { hash.append($0) }
    return try? hash.finish()
  }
  /// Returns the folder in which that secret is; nil if there is no place for it.
  package var secretFolder: @Sendable () -> String? = { (try? HostSecret(HostFiles()))?.folder }

  /// Creates a source.
  package init(
    unixSeconds: @escaping @Sendable () -> UInt64?, uptime: @escaping @Sendable () -> Uptime?,
    release: @escaping @Sendable () -> [UInt8]?
  ) {
    (self.unixSeconds, self.uptime, self.release) = (unixSeconds, uptime, release)
  }

  /// The host itself.
  package static let system = HostSource(
    unixSeconds: { SystemClock().unixSeconds() }, uptime: { .system() },
    release: { try? Files.readFile(at: "/etc/os-release", limit: 65_536) })
}

/// The time since a start of the host, which nobody can set. It counts while the host sleeps.
package struct Uptime: Sendable, Equatable {
  /// The kernel's id of this start, a UUID.
  package let bootID: String
  /// The seconds since then.
  package let seconds: UInt64

  /// Creates an uptime.
  package init(bootID: String, seconds: UInt64) { (self.bootID, self.seconds) = (bootID, seconds) }

  /// Reads `/proc/sys/kernel/random/boot_id` and `CLOCK_BOOTTIME`.
  static func system() -> Uptime? {
    guard let bytes = try? Files.readFile(at: "/proc/sys/kernel/random/boot_id", limit: 64),
      bytes.count == byteCount + 1, let id = String(validating: bytes.dropLast(), as: UTF8.self), isID(id)
    else { return nil }
    return Uptime(bootID: id, seconds: UInt64(clamping: SteadyClock.bootSeconds()))
  }

  private static let byteCount = 36

  /// Returns whether a text has the form of a UUID.
  static func isID(_ text: String) -> Bool {
    text.utf8.count == byteCount
      && text.utf8.allSatisfy { $0 == UInt8(ascii: "-") || hexadecimalDigits.contains($0) }
  }

  private static let hexadecimalDigits = Set("0123456789abcdef".utf8)
}

/// The operating system of the prover's host, as `/etc/os-release` names it.
package struct OperatingSystem: Sendable, Equatable {
  /// `ID`, such as `debian`; `linux` if the file does not name it.
  package let id: String
  /// `VERSION_ID`, such as `12`; nil if the file does not name it or the version is not made of numbers.
  package let version: DottedVersion?

  /// Reads the contents of the file.
  package init(release bytes: [UInt8]) {
    id = SystemRelease.value(of: "ID=", in: bytes)?.description ?? "linux"
    version = SystemRelease.value(of: "VERSION_ID=", in: bytes).flatMap { DottedVersion($0.description) }
  }
}
