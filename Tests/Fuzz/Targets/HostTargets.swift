import HoldfastCore
import HoldfastLinux
import HoldfastMeasurement
import HoldfastOpenSSL
import HoldfastVault
import HoldfastVectors

/// The readers of files on the prover's host, of a vault, and of test vectors.
let hostTargets = [
  FuzzTarget(
    "proc", ["HoldfastMeasurement/Process/MemoryMap.swift", "HoldfastMeasurement/Process/ProcessFiles.swift"]
  ) { bytes in
    let status = attempt { try ThreadStatus(parsing: bytes) }
    note(String(describing: status))
    let text = String(decoding: bytes, as: UTF8.self)
    let (isSwapped, isLocked) = (Swap.isOn(swaps: text), Swap.isLocked(status: text))
    let listening = bytes.split(separator: 0x0a).map { ListeningSockets.isListener($0, on: 22) }
    note("\(isSwapped) \(isLocked) \(listening)")
    let map = try MemoryMap(parsing: bytes)
    for segment in map.executableSegments {
      try require(segment.addresses.lowerBound < segment.addresses.upperBound, "a segment of code is empty")
      let count = segment.byteCount
      note("\(segment.addresses) \(count)")
    }
    let executable = Array("/usr/bin/app".utf8)
    let sorted = map.executableSegments.sorted { $0.precedes($1, executable: executable) }
    for segment in sorted { note("\(segment.path) \(segment.fileOffset)") }
    for (first, second) in zip(sorted, sorted.dropFirst()) {
      try require(!second.precedes(first, executable: executable), "segments have no order")
    }
    let areKernels = bytes.split(separator: 0x0a).map { MemoryMapping(parsing: $0)?.isKernelCode }
    note("\(areKernels)")
    var input = FuzzInput(bytes)
    let entry = (0..<8).reduce(UInt64(0)) { word, _ in word << 8 | UInt64(input.byte()) }
    let isFileBacked = PageMap.isFileBacked(entry: entry)
    note("\(isFileBacked)")
    try require(!PageMap.isFileBacked(entry: entry | 1 << 62), "a page that is swapped out is a file's")
  },
  FuzzTarget("vault-record", ["HoldfastVault/Folder/VaultRecord.swift"], maximumByteCount: 400) { bytes in
    let host = Secret<32>()
    var record = bytes
    guard record.count >= 64 else { return }
    // The MAC is made anew, as only the host can.
    record.replaceSubrange(
      (record.count - 32)...,
      with: [UInt8](
        try VaultMAC.compute(
          over: Array(record.dropLast(32)), id: VaultID(record.span.extracting(16..<32)) ?? VaultID(), host: host
        ).bytes))
    guard let read = try VaultRecord(record, for: host) else { return note("no record") }
    note("\(read)")
    try require(try read.encoded(for: host) == record, "the record of a vault that is read and written again differs")
  },
  FuzzTarget("vault-contents", ["HoldfastVault/Contents/ChunkCipher.swift"], maximumByteCount: 16, variantCount: 16) {
    bytes in
    var input = FuzzInput(bytes)
    let vault = UnlockedVault(id: VaultID(), key: SecretBytes(zeros: 32)) { _ in }
    let contents = Array((0..<input.number() * 3).map { UInt8(truncatingIfNeeded: $0 / 7) })
    let sealed = try vault.encrypted(contents)
    var changed = sealed
    while !input.isEmpty { change(&changed, by: &input) }
    let opened = attempt { try vault.decrypted(changed) }
    try require(opened == (changed == sealed ? contents : nil), "changed contents of a vault are released")
  },
  FuzzTarget("vault-agent", ["HoldfastVault/Agent/AgentMessage.swift", "HoldfastVault/Agent/HeldSecrets.swift"]) {
    bytes in
    var input = FuzzInput(bytes)
    var secrets = try HeldSecrets(idleSeconds: 60, shiftSeconds: 600)
    var now: Int64 = 0
    while !input.isEmpty {
      now += Int64(input.byte() & 31)
      let request = Array(input.message().prefix(AgentMessage.largest))
      secrets.withMessage { message in for index in request.indices { message[index] = request[index] } }
      let count = AgentMessage.answer(byteCount: request.count, &secrets, at: now)
      secrets.withMessage { message in note((0..<count).map { message[$0] }) }
      try require((1...AgentMessage.largest).contains(count), "an answer of the agent has an impossible length")
    }
  },
  FuzzTarget(
    "vectors", ["HoldfastVectors/File/VectorFile.swift", "HoldfastVectors/Replay/Report.swift"], variantCount: 16
  ) { bytes in
    let report = try VectorFile(parsing: bytes, name: "fuzz").replay()
    note("\(report)")
  },
]

/// Changes encrypted contents: a byte, their length, or the order of two chunks.
private func change(_ sealed: inout [UInt8], by input: inout FuzzInput) {
  let (kind, place) = (input.byte(), input.number() * 3)
  switch kind {
  case 0..<64: sealed = Array(sealed.prefix(place))
  case 64..<128: sealed.append(UInt8(truncatingIfNeeded: place))
  case 128..<192:
    let (header, chunk) = (96, 65_552)
    let last = min(header + 2 * chunk, sealed.count)
    guard last > header + chunk else { return }
    let first = Array(sealed[header..<header + chunk])
    sealed.removeSubrange(header..<header + chunk)
    sealed.insert(contentsOf: first, at: last - chunk)
  default: if place < sealed.count { sealed[place] ^= kind | 1 }
  }
}
