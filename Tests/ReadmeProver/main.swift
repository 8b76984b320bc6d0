import FoundationEssentials
import HoldfastMeasurement

// Usage: ReadmeProver NONCE, 32 hexadecimal digits that the device chose.
let digits = Array(CommandLine.arguments.dropFirst().joined())
let nonce = stride(from: 0, to: digits.count, by: 2).compactMap { UInt8(String(digits[$0...].prefix(2)), radix: 16) }
let configuration = try Data(contentsOf: URL(filePath: "measurement_config.bin"))
let proof = try integrityMeasurementProof(nonce: nonce, configuration: Array(configuration), keys: .default)
print(proof.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined())
