/** What the code sees of OpenTelemetry's spans; "tracing" elsewhere is knowledge tracing. */

/** By OpenTelemetry's semantic conventions. Never an id of a learner, a key, or a text that may quote a request. */
type Attributes = Readonly<Record<string, string | number>>;

/** A sampled span that has not ended; what is not sampled has none. Times are of `unixMs`; absent: now. */
export interface Span {
  child(name: string, attributes?: Attributes, links?: readonly Span[], start?: number): Span;
  /** @param attributes with `error.type` where it failed */
  end(attributes?: Attributes, at?: number): void;
}

/** Begins the span of a request, with its headers by lower-case name, or of a job; null where it is not sampled. */
export type Spans = (name: string, header?: (name: string) => string | null) => Span | null;

/** With fractions, which Date.now() lacks: a batch takes two milliseconds. */
export const unixMs = (): number => performance.timeOrigin + performance.now();

/** A round trip to Redis. */
export type StepTimes = { readonly name: 'load' | 'commit'; readonly start: number; readonly end: number };

/** Ends the span with the work. */
export function ending<Value>(span: Span | null | undefined, work: Promise<Value>): Promise<Value> {
  const failed = ({ name }: Error): void => span?.end({ 'error.type': name });
  if (span) work.then(() => span.end(), failed);
  return work;
}

export function timed<Value>(steps: StepTimes[] | null, name: StepTimes['name'], step: () => Promise<Value>) {
  if (steps === null) return step();
  const start = unixMs();
  return step().finally(() => steps.push({ name, start, end: unixMs() }));
}
