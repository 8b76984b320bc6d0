import ArgumentParser
import HoldfastCore
import HoldfastIssuer
import HoldfastJSON
import HoldfastKeys
import HoldfastOpenSSL
import HoldfastStorage

struct ServiceMACKey: Verb {
  static let configuration = CommandConfiguration(
    commandName: "mac-key",
    abstract: "Write the key that the issuer shares with one device, for tokens with a MAC instead of a signature.",
    discussion: """
      Anyone who reads the file can make tokens for that device. Bring it there unseen, give it to device trust, and \
      delete it. It is the same each time.
      """,
    examples: [
      "holdfast service mac-key --dir service --device lock.json mac.jwk"
    ])

  @OptionGroup var service: ServiceOptions
  @OptionGroup var output: OutputOptions

  @Option(help: "The device's descriptor, as device show --json prints it.", completion: .file())
  var device: String

  @Argument(help: "Where the key goes, a file that is not there yet.", completion: .file())
  var file: String

  mutating func perform() throws(Failure) {
    guard file != "-" else { throw Failure(.usage, "the key is secret and is not shown", hint: "name a file for it") }
    let descriptor = try DeviceDescriptor(file: device)
    let folder = service.folder
    let key = try serving(service.dir) { () throws(ServiceFolderFault) in try folder.macKey(for: descriptor) }
    var text = ByteBuffer<512>()
    do throws(EncodingFault) { try MACKeyJWK.encode(key, into: &text) } catch {
      throw Failure(.fault, "the key could not be written")
    }
    do throws(FileError) { try Files.writeFileAtomically(text.bytes, at: file, overwrite: false) } catch {
      throw Failure(making: error)
    }
    let keyID = try IssuerKey.mac(key).keyID()
    if output.json {
      Console.result(.object([("kid", .string(hexadecimal(keyID))), ("file", .string(file))]))
    } else {
      Console.result("MAC key \(hexadecimal(keyID)) of device \(hexadecimal(descriptor.deviceID)) in \(file)")
    }
  }
}
