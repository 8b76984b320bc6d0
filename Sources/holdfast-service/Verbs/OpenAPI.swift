#if Service
import ArgumentParser
import HoldfastService

struct OpenAPI: ServiceVerb {
  static let configuration = CommandConfiguration(
    commandName: "openapi", abstract: "Print the description of the HTTP interface, an OpenAPI document in YAML.")

  mutating func perform() async throws(ServiceFailure) {
    Output.result(lines: Array(OpenAPIDocument.yaml.utf8))
  }
}
#endif
