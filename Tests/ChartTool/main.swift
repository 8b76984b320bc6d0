import Glibc
import HoldfastCharts
import HoldfastFormats
import HoldfastLinux

// Usage: bench-charts IN.json OUT.svg
//
// Draws the chart that IN.json describes; see ChartFile.

func fail(_ message: String) -> Never {
  let text = "bench-charts: \(message)\n"
  _ = unsafe write(STDERR_FILENO, text, text.utf8.count)
  exit(1)
}

let arguments = CommandLine.arguments
guard arguments.count == 3 else { fail("usage: bench-charts IN.json OUT.svg") }
let bytes: [UInt8]
do throws(FileError) { bytes = try Files.readFile(at: arguments[1], limit: ChartFile.byteLimit) } catch {
  fail("\(arguments[1]) cannot be read")
}
let svg: String
do throws(JSONMistake) { svg = try ChartFile.svg(of: bytes) } catch {
  fail(error.located(in: bytes).text(in: arguments[1]))
}
guard let file = unsafe fopen(arguments[2], "w") else { fail("\(arguments[2]) cannot be written") }
let count = unsafe fwrite(svg, 1, svg.utf8.count, file)
guard unsafe fclose(file) == 0, count == svg.utf8.count else { fail("\(arguments[2]) cannot be written") }
