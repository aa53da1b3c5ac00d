/** Interface to OpenTelemetry. Elsewhere, "tracing" means knowledge tracing. */

/** Never contains learner ids, keys, or text that may quote a request. */
type Attributes = Readonly<Record<string, string | number>>;

/** Times are from `unixMs`; absent: now. */
export interface Span {
  child(name: string, attributes?: Attributes, links?: readonly Span[], start?: number): Span;
  /** @param attributes with `error.type` on failure */
  end(attributes?: Attributes, at?: number): void;
}

/** @param header by lower-case name; absent for a job. @returns null if not sampled */
export type StartSpan = (name: string, header?: (name: string) => string | null) => Span | null;

/** With fractions, because a batch takes 2 ms. */
export const unixMs = (): number => performance.timeOrigin + performance.now();

export type StepTiming = { readonly name: 'load' | 'commit'; readonly start: number; readonly end: number };

export function endSpanAfter<Value>(span: Span | null | undefined, work: Promise<Value>): Promise<Value> {
  const failed = ({ name }: Error): void => span?.end({ 'error.type': name });
  if (span) work.then(() => span.end(), failed);
  return work;
}

export function recordTiming<Value>(
  steps: StepTiming[] | null,
  name: StepTiming['name'],
  step: () => Promise<Value>,
) {
  if (steps === null) return step();
  const start = unixMs();
  return step().finally(() => steps.push({ name, start, end: unixMs() }));
}
