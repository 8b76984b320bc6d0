import HoldfastCore
import HoldfastQRCode
import Testing

struct QRCodeTests {
  private static let text = "otpauth://totp/a?secret=GE"
  /// The picture that `qrencode -8 -l M -m 0 -t ASCII` draws of ``text``, one character for each module; zbarimg reads it.
  private static let symbol = """
    #######..##....#..#######
    #.....#.###....##.#.....#
    #.###.#...###..#..#.###.#
    #.###.#..##.#.#.#.#.###.#
    #.###.#.#...#.###.#.###.#
    #.....#......####.#.....#
    #######.#.#.#.#.#.#######
    .........#######.........
    #.#.#.#...##.#..#...#..#.
    #....#...#..##..####.#..#
    #.#...#.###.###..#.#..###
    #..##..#.#.#.##.#.#.#..#.
    ####..##....##.####....##
    .#..##.#..##.##...##.#..#
    #.#...###.#..##.###..####
    .###.#..#..###.#.#.##...#
    #..#.##.....##..######.#.
    ........##.###..#...#..##
    #######...#....##.#.#####
    #.....#.....###.#...#..##
    #.###.#.###.##..######...
    #.###.#..#######....#....
    #.###.#.##.....##...#.#.#
    #.....#...####..#.##...#.
    #######.##.#.#####.....##
    """

  private func drawing(quietZone: Int, _ contrast: QRCode.Contrast) throws -> [String] {
    let code = try QRCode(encoding: Array(Self.text.utf8).span)
    let drawing = code.drawing(quietZone: quietZone, contrast: contrast)
    let text = String(decoding: drawing.withBytes { [UInt8]($0) }, as: UTF8.self)
    return text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
  }

  /// The modules of a drawing's lines, two rows a line: `#` where the block is inked.
  private func rows(_ lines: [String]) -> [String] {
    lines.flatMap { line in
      [
        String(line.map { $0 == "█" || $0 == "▀" ? "#" : "." } as [Character]),
        String(line.map { $0 == "█" || $0 == "▄" ? "#" : "." } as [Character]),
      ]
    }
  }

  @Test("the modules are those that qrencode draws")
  func modules() throws {
    let code = try QRCode(encoding: Array(Self.text.utf8).span)
    let expected = Self.symbol.split(separator: "\n").map(String.init)
    try #require(expected.count == code.width)
    for row in 0..<code.width {
      let drawn = String((0..<code.width).map { code.isDark(row: row, column: $0) ? "#" : "." } as [Character])
      #expect(drawn == expected[row])
    }
    #expect(!code.isDark(row: -1, column: 0) && !code.isDark(row: 0, column: code.width))
  }

  @Test("a drawing has the symbol in half blocks, with a quiet zone all around", arguments: [0, 2, 4])
  func drawn(quietZone: Int) throws {
    let lines = try drawing(quietZone: quietZone, .darkOnLight)
    #expect(lines.last == "")
    let drawn = rows(lines.dropLast())
    let symbol = Self.symbol.split(separator: "\n").map(String.init)
    let side = symbol.count + 2 * quietZone
    let margin = String(repeating: ".", count: quietZone)
    let empty = String(repeating: ".", count: side)
    var expected = [String](repeating: empty, count: quietZone)
    expected += symbol.map { margin + $0 + margin }
    expected += [String](repeating: empty, count: quietZone + side % 2)
    #expect(drawn == expected)
  }

  @Test("on a dark terminal the light modules are drawn, and with colours each line says and ends its own")
  func contrasts() throws {
    let dark = try drawing(quietZone: 4, .darkOnLight).dropLast()
    let light = try drawing(quietZone: 4, .lightOnDark).dropLast()
    let opposite: [Character: Character] = ["█": " ", " ": "█", "▀": "▄", "▄": "▀"]
    #expect(Array(light) == dark.map { line in String(line.map { opposite[$0] ?? "?" } as [Character]) })
    let coloured = try drawing(quietZone: 4, .coloured).dropLast()
    #expect(Array(coloured) == dark.map { "\u{1b}[30;107m\($0)\u{1b}[0m" })
  }

  @Test("nothing, and more than the largest symbol holds, is refused")
  func refused() throws {
    #expect(throws: QRCodeFault.empty) { _ = try QRCode(encoding: [UInt8]().span) }
    #expect(throws: QRCodeFault.tooLong) { _ = try QRCode(encoding: [UInt8](repeating: 0x61, count: 2332).span) }
    let largest = try QRCode(encoding: [UInt8](repeating: 0xff, count: 2331).span)
    #expect(largest.width == 177)
    #expect(largest.columnCount() == 185)
  }

  @Test("bytes of zero are encoded like any other")
  func zeros() throws {
    let code = try QRCode(encoding: [0, 0, 0].span)
    #expect(code.width == 21)
  }
}
