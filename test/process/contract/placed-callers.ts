/** Calls over REST and gRPC to each node of a placed cluster. */
import type { PlacedNodes } from "../placement/placed-nodes.js";
import { GrpcCaller, type Json, type Reply, http1, post } from "./wire.js";

export class PlacedCallers {
  readonly grpc = new Map<number, GrpcCaller>();
  private readonly http = new Map<number, string>();

  constructor(readonly nodes: PlacedNodes) {}

  async open(): Promise<this> {
    for (const id of this.nodes.running) {
      const { grpc, http } = await this.nodes.addresses(id);
      this.grpc.set(id, new GrpcCaller(grpc));
      this.http.set(id, `http://${http}`);
    }
    return this;
  }

  get(id: number, path: string): Promise<Reply> {
    return http1(this.http.get(id) ?? "", path);
  }

  post(id: number, path: string, body: object): Promise<Reply> {
    return post(this.http.get(id) ?? "", path, body);
  }

  async rpc(id: number, name: string, fields: Json): Promise<Json> {
    const reply = await this.grpc.get(id)?.call("Cluster", name, fields);
    if (reply?.code !== 0) throw new Error(`${name}: status ${String(reply?.code)}`);
    return reply.fields;
  }

  leave(id: number, body: object = {}): Promise<Reply> {
    return this.post(id, "/v1/cluster/leave", body);
  }

  close(): void {
    for (const caller of this.grpc.values()) caller.close();
  }
}
