/** The batch streams once more, on the port that they share with REST. */
process.env["SVC_GRPC_FRONT"] = "https";
await import("./streams.test.js");
