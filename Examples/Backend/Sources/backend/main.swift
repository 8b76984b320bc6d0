import Foundation
import HoldfastCore
import HoldfastIssuer

// backend FOLDER key: prints the key that devices must trust.
// backend FOLDER DEVICE.json <EVIDENCE >TOKEN: issues a token for an approved app and a registered device.
do {
  let words = CommandLine.arguments
  guard words.count == 3, let scalar = FileManager.default.contents(atPath: "\(words[1])/issuer.key"),
    let secret = Secret<32>(copying: Array(scalar).span)
  else { throw CocoaError(.fileReadCorruptFile) }
  let issuer = Issuer(
    name: BoundedText("backend.example" as StaticString), key: try MemorySigningKey(scalar: secret),
    store: FolderStore(folder: words[1]))
  if words[2] == "key" {
    print(issuer.publicKeyJSON)
  } else {
    let device = try DeviceDescriptor(json: Array(Data(contentsOf: URL(filePath: words[2]))))
    let evidence = Array(FileHandle.standardInput.readDataToEndOfFile())
    FileHandle.standardOutput.write(Data(try issuer.issue(evidence: evidence, for: device).bytes))
  }
} catch {
  FileHandle.standardError.write(Data("backend: \(error)\n".utf8))
  exit(1)
}
