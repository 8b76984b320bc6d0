// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "KeyRing", dependencies: [.package(name: "holdfast", path: "../..")],
  targets: [
    .executableTarget(
      name: "KeyRing",
      dependencies: [
        .product(name: "HoldfastAuthenticator", package: "holdfast"),
        .product(name: "HoldfastCore", package: "holdfast"), .product(name: "HoldfastLinux", package: "holdfast"),
        .product(name: "HoldfastMeasurement", package: "holdfast"),
        .product(name: "HoldfastProver", package: "holdfast"),
        .product(name: "HoldfastTransport", package: "holdfast"), .product(name: "HoldfastUser", package: "holdfast"),
      ],
      plugins: [.plugin(name: "HoldfastProofKeys", package: "holdfast")])
  ])
