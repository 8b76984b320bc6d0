import Glibc

/// Texts of numbers for people: three significant digits, and prefixes or powers of ten where digits would be many.
package enum NumberText {
  /// Returns a number with three significant digits, and all digits of an integer part below a million; without a fraction's
  /// zeros at the end.
  package static func of(_ value: Double) -> String {
    guard value.isFinite else { return "–" }
    let size = abs(value)
    let sign = value < 0 ? "−" : ""
    if size == 0 { return "0" }
    if size < 0.000_999_5 || size >= 999.5e9 { return sign + power(size) }
    if size >= 999.5e6 { return sign + significant(size / 1e9) + " G" }
    if size >= 999_999.5 { return sign + significant(size / 1e6) + " M" }
    if size >= 999.5 { return sign + grouped(UInt64(size.rounded())) }
    return sign + significant(size)
  }

  /// Returns a number with its unit.
  package static func of(_ value: Double, _ unit: String) -> String {
    unit.isEmpty ? of(value) : "\(of(value)) \(unit)"
  }

  /// Three significant digits of a number from 0.001 to 1000.
  private static func significant(_ value: Double) -> String {
    let decimals = max(2 - Int(log10(value).rounded(.down)), 0)
    return decimal(value, decimals: decimals)
  }

  /// A number of at most 10^9 with up to so many decimals, without zeros at the end.
  static func decimal(_ value: Double, decimals: Int) -> String {
    let factor = pow(10, Double(decimals))
    let scaled = Int64((value * factor).rounded())
    let digits = String(scaled.magnitude)
    let padded = String(repeating: "0", count: max(decimals + 1 - digits.count, 0)) + digits
    var fraction = padded.suffix(decimals)
    while fraction.last == "0" { fraction.removeLast() }
    let whole = padded.dropLast(decimals)
    return (scaled < 0 ? "-" : "") + whole + (fraction.isEmpty ? "" : ".") + fraction
  }

  /// The digits of an integer in groups of three.
  private static func grouped(_ value: UInt64) -> String {
    var text = ""
    for (index, digit) in String(value).reversed().enumerated() {
      if index > 0 && index % 3 == 0 { text.append(",") }
      text.append(digit)
    }
    return String(text.reversed())
  }

  private static func power(_ value: Double) -> String {
    var exponent = Int(log10(value).rounded(.down))
    var mantissa = value / pow(10, Double(exponent))
    if mantissa >= 9.995 { (mantissa, exponent) = (1, exponent + 1) }
    let digits = decimal(mantissa, decimals: 2)
    return (digits == "1" ? "" : "\(digits)·") + "10" + superscript(exponent)
  }

  private static func superscript(_ exponent: Int) -> String {
    let digits = Array("⁰¹²³⁴⁵⁶⁷⁸⁹")
    return (exponent < 0 ? "⁻" : "") + String(String(abs(exponent)).map { digits[$0.wholeNumberValue ?? 0] })
  }
}
