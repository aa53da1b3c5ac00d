import type { Route } from '../base/route.js';
import { CoveragePart } from './model/coverage.jsx';
import { ReliabilityPart } from './model/reliability.jsx';
import { VersionsPart } from './model/versions.jsx';

export function ModelPage({ route: { query } }: { readonly route: Route }) {
  return (
    <>
      <h1>Model</h1>
      <p class="soft">
        Compares predictions with results, and lists the versions of the model parameters. Days are UTC days.
      </p>
      <ReliabilityPart days={query.days} skill={query.skill} />
      <CoveragePart horizon={query.horizon} />
      <VersionsPart query={query} />
    </>
  );
}
