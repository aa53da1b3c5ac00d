import { buildHref, type Route } from '../base/route.js';
import { RequireScope, type ScopedPart } from '../parts/require-scope.jsx';
import { ActivityPart } from './operations/activity.jsx';
import { AuditPart } from './operations/audit.jsx';
import { ErasuresPart } from './operations/erasures.jsx';
import { HealthPart } from './operations/health.jsx';
import { KeysPart } from './operations/keys.jsx';
import { ParkedPart } from './operations/parked.jsx';
import { SettingsPart } from './operations/settings.jsx';
import { WebhooksPart } from './operations/webhooks.jsx';

const parts: Readonly<Record<string, ScopedPart>> = {
  keys: { title: 'Keys', scopes: ['admin', 'operator'], Content: KeysPart },
  settings: { title: 'Settings', scopes: ['admin', 'operator'], Content: SettingsPart },
  webhooks: { title: 'Webhooks', scopes: ['admin'], Content: WebhooksPart },
  erasures: { title: 'Erasures', scopes: ['admin'], Content: ErasuresPart },
  parked: { title: 'Parked rows', scopes: ['operator'], Content: ParkedPart },
  audit: { title: 'Audit', scopes: ['operator'], Content: AuditPart },
  activity: { title: 'Activity', scopes: ['admin', 'operator'], Content: ActivityPart },
  versions: { title: 'Health and versions', scopes: ['admin', 'operator'], Content: HealthPart },
};

export function OperationsPage({ route }: { readonly route: Route }) {
  const [name = 'keys'] = route.args;
  const part = Object.hasOwn(parts, name) ? parts[name] : undefined;
  return (
    <>
      <h1>Operations</h1>
      <nav class="tabs" aria-label="Operations pages">
        {Object.entries(parts).map(([id, { title }]) => (
          <a
            key={id}
            class="tab"
            href={buildHref('operations', [id])}
            aria-current={id === name ? 'page' : undefined}
          >
            {title}
          </a>
        ))}
      </nav>
      {part === undefined ? (
        <p class="note">Page not found.</p>
      ) : (
        <RequireScope part={part} route={route} verb="need" />
      )}
    </>
  );
}
