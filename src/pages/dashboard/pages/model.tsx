import { useLoad } from '../base/load.js';
import type { Route } from '../base/route.js';
import { useViewer } from '../base/viewer.js';
import { Loaded } from '../parts/loaded.jsx';
import { PeriodSelect, parseDays } from '../parts/period-select.jsx';
import { CoveragePart } from './model/coverage.jsx';
import { ReliabilityPart } from './model/reliability.jsx';
import { judgeForecasts, verdictRule } from './model/verdict.js';
import { VersionsPart } from './model/versions.jsx';

export function ModelPage({ route: { query } }: { readonly route: Route }) {
  const { api } = useViewer();
  const days = parseDays(query.days);
  const coverage = useLoad((signal) => api.coverage({ days, signal }), [api, days], true);
  return (
    <>
      <h1>Model</h1>
      <div class="row">
        <PeriodSelect days={days} />
      </div>
      <Loaded load={coverage} subject="the verdict">
        {({ bands }) => {
          const { tone, text } = judgeForecasts(bands, days);
          return (
            <div class={`note ${tone}`}>
              <p>
                <strong>{text}</strong>
              </p>
              <p class="soft">{verdictRule}</p>
            </div>
          );
        }}
      </Loaded>
      <ReliabilityPart days={days} skill={query.skill} />
      <CoveragePart coverage={coverage} horizon={query.horizon} />
      <VersionsPart query={query} />
    </>
  );
}
