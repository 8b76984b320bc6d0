// Usage: DeviceTwin IMAGE LEDGER
//
// Answers on Linux what a board was asked: reads lines of `M1 M2 SECONDS`, the messages in hexadecimal digits, and writes a line
// with M3 for each. The answer is given that many seconds after the time in M1. The line `restart` is a power cut. LEDGER is made,
// where there must be nothing.

guard CommandLine.arguments.count == 3 else { fatalError("usage: DeviceTwin IMAGE LEDGER") }
var device = try TwinDevice(image: CommandLine.arguments[1], ledger: CommandLine.arguments[2])
while let line = readLine() {
  if line == "restart" {
    try device.restart()
    continue
  }
  let fields = line.split(separator: " ")
  guard fields.count == 3, let seconds = UInt64(fields[2]) else { fatalError("two messages and seconds are expected") }
  let (challenge, answer) = (bytes(hexadecimal: fields[0]), bytes(hexadecimal: fields[1]))
  print(hexadecimal(try device.answer(answer, to: challenge, after: seconds)))
}

func bytes(hexadecimal digits: Substring) -> [UInt8] {
  let digits = Array(digits)
  return stride(from: 0, to: digits.count, by: 2).map { start in
    guard let byte = UInt8(String(digits[start..<min(start + 2, digits.count)]), radix: 16) else {
      fatalError("hexadecimal digits are expected")
    }
    return byte
  }
}

func hexadecimal(_ bytes: [UInt8]) -> String {
  bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
}
