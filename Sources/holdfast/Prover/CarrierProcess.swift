import Glibc
import HoldfastOnline

extension CarrierProcess {
  private static let name = "holdfast-carrier"

  /// Returns the carrier's path: in the folder of this program, else in `../libexec/holdfast` from there. Neither `PATH` nor another
  /// variable counts.
  static func path() throws(Failure) -> String {
    let program = try Playground.program
    let folder = program.utf8.lastIndex(of: UInt8(ascii: "/")).map { String(program[..<$0]) } ?? ""
    let places = [folder, "\(folder)/../libexec/holdfast"].map { "\($0)/\(name)" }
    for place in places where unsafe access(place, F_OK) == 0 { return place }
    throw Failure(missingCarrier: places)
  }
}
