import { href, type Route } from '../base/route.js';
import { Scoped, type ScopedPart } from '../parts/scoped.jsx';
import { AuditPart } from './operations/audit.jsx';
import { ErasuresPart } from './operations/erasures.jsx';
import { KeysPart } from './operations/keys.jsx';
import { ParkedPart } from './operations/parked.jsx';
import { VersionsPart } from './operations/versions.jsx';
import { WebhooksPart } from './operations/webhooks.jsx';

const parts: Readonly<Record<string, ScopedPart>> = {
  keys: { title: 'Keys', scopes: ['admin', 'operator'], Content: KeysPart },
  webhooks: { title: 'Webhooks', scopes: ['admin'], Content: WebhooksPart },
  erasures: { title: 'Erasures', scopes: ['admin'], Content: ErasuresPart },
  parked: { title: 'Parked rows', scopes: ['operator'], Content: ParkedPart },
  audit: { title: 'Audit', scopes: ['operator'], Content: AuditPart },
  versions: { title: 'Health and versions', scopes: ['admin', 'operator'], Content: VersionsPart },
};

export function OperationsPage({ route }: { readonly route: Route }) {
  const [name = 'keys'] = route.args;
  const part = Object.hasOwn(parts, name) ? parts[name] : undefined;
  return (
    <>
      <h1>Operations</h1>
      <nav class="tabs" aria-label="Parts of operations">
        {Object.entries(parts).map(([id, { title }]) => (
          <a
            key={id}
            class="tab"
            href={href('operations', [id])}
            aria-current={id === name ? 'page' : undefined}
          >
            {title}
          </a>
        ))}
      </nav>
      {part === undefined ? (
        <p class="note">There is no such part.</p>
      ) : (
        <Scoped of={part} route={route} verb="need" />
      )}
    </>
  );
}
