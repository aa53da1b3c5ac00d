import type { ComponentType } from 'preact';
import type { OwnKey } from '../../../client/types.js';
import type { Route } from '../base/route.js';
import { useViewer } from '../base/viewer.js';

export interface ScopedPart {
  readonly title: string;
  /** The key needs at least one of them. */
  readonly scopes: readonly OwnKey['scopes'][number][];
  readonly Content: ComponentType<{ readonly route: Route }>;
}

interface RequireScopeProps {
  readonly part: ScopedPart;
  readonly route: Route;
  readonly verb: 'need' | 'needs';
}

/** Lists the required scopes if the key has none of them. */
export function RequireScope({ part: { title, scopes, Content }, route, verb }: RequireScopeProps) {
  const { ownKey, hasScope } = useViewer();
  if (scopes.some(hasScope)) return <Content key={title} route={route} />;
  return (
    <p class="note">
      <span>
        {title} {verb} a key with the scope <code>{scopes.join(' or ')}</code>. Scopes of this key:{' '}
        {ownKey.scopes.join(', ') || 'none'}.
      </span>
    </p>
  );
}
