/** The part of autocannon's interface that the load scripts use. */
declare module "autocannon" {
  interface Options {
    readonly url: string;
    readonly connections: number;
    readonly duration: number;
    readonly method?: string;
    readonly headers?: Readonly<Record<string, string>>;
    readonly body?: string;
    readonly pipelining?: number;
  }
  interface Distribution {
    readonly average: number;
    readonly p50: number;
    readonly p99: number;
    readonly p99_9: number;
    readonly max: number;
    readonly total: number;
  }
  interface Result {
    readonly requests: Distribution;
    /** Milliseconds. */
    readonly latency: Distribution;
    readonly errors: number;
    readonly timeouts: number;
    readonly non2xx: number;
    readonly duration: number;
  }
  export default function autocannon(options: Options): Promise<Result>;
}
