import type { ComponentChildren } from 'preact';
import { SkilltraceError } from '../../../client/errors.js';
import { pluralize } from '../base/format.js';
import type { LoadState } from '../base/load.js';
import { Button } from './button.jsx';

export const Loading = ({ subject }: { subject: string }) => (
  <p class="loading" role="status">
    Loading {subject}…
    <span class="late">Still loading. The service is busy, or the key has used up its quota.</span>
  </p>
);

function suggestRemedy(error: unknown): string {
  if (!(error instanceof SkilltraceError)) return 'This is a defect in the page. Please report it.';
  const { code, status, requestId, retryAfterMs } = error;
  if (code === 'NETWORK_ERROR' || code === 'TIMEOUT')
    return 'The service does not respond. Check that it is running.';
  if (code === 'UNAVAILABLE')
    return 'Try again later. Operations and /readyz show which server is unavailable.';
  if (code === 'RATE_LIMITED')
    return `The key has used up its quota. Try again ${formatRetryTime(retryAfterMs)}.`;
  if (code === 'FORBIDDEN') return 'Sign in with a key that has this scope.';
  if (code === 'UNAUTHORIZED') return 'The key was revoked. Sign out and enter another key.';
  if (status === 431) return 'The URL of the request is too long.';
  return status < 500 || requestId === null ? '' : `Search the log for request ${requestId}.`;
}

const formatRetryTime = (ms: number | null): string =>
  ms === null ? 'later' : `in ${pluralize(Math.ceil(ms / 1000), 'second')}`;

/** True if a retry would fail again. */
const isPermanent = (error: unknown): boolean =>
  error instanceof SkilltraceError && error.status >= 400 && !error.retryable;

export function ErrorNote({ error, retry }: { error: unknown; retry?: (() => void) | undefined }) {
  const message = (error instanceof Error ? error.message : String(error)).replace(/(?<![.!?])$/, '.');
  return (
    <div class="note alert" role="alert">
      <p>
        <strong>{message}</strong> {suggestRemedy(error)}
      </p>
      {retry !== undefined && !isPermanent(error) && <Button onClick={retry}>Try again</Button>}
    </div>
  );
}

interface LoadedProps<Data> {
  readonly load: LoadState<Data>;
  /** Completes the sentence "Loading …". */
  readonly subject: string;
  readonly children: (data: Data) => ComponentChildren;
}

export function Loaded<Data>({ load, subject, children }: LoadedProps<Data>) {
  if (load.error !== null) return <ErrorNote error={load.error} retry={load.reload} />;
  if (load.data === null) return <Loading subject={subject} />;
  return (
    <div class="loaded" aria-busy={load.isLoading}>
      {children(load.data)}
    </div>
  );
}
