import type { ModelVersionPage } from '../../../../client/types.js';
import { formatDecimal, formatPercent, missingText, pluralize } from '../../base/format.js';
import { useLoad } from '../../base/load.js';
import { useSkillNames } from '../../base/skill-names.js';
import { useViewer } from '../../base/viewer.js';
import { Loaded } from '../../parts/loaded.jsx';
import { fetchPairs, listChanges, parameterTexts } from './version-comparison.jsx';

const maxListed = 3;

interface RollBackPreviewProps {
  readonly from: number;
  /** 0: defaults. */
  readonly to: number;
  readonly versions: ModelVersionPage['versions'];
}

/** What changes if version `to` replaces version `from`. */
export function RollBackPreview({ from, to, versions }: RollBackPreviewProps) {
  const { api } = useViewer();
  const getSkillName = useSkillNames(api);
  const loaded = useLoad((signal) => fetchPairs(api, from, to, signal), [api, from, to]);
  return (
    <Loaded load={loaded} subject="the changes">
      {({ pairs, isCut }) => {
        const changes = listChanges(pairs);
        const skills = new Set(changes.map(({ skillId }) => skillId)).size;
        const listed = changes
          .filter(({ before, after }) => before !== null && after !== null)
          .slice(0, maxListed);
        return (
          <>
            <p>{describeAccuracy(from, to, versions)}</p>
            <p>
              {pluralize(skills, 'skill gets', 'skills get')} {to === 0 ? 'default' : 'other'} parameters, of{' '}
              {isCut ? 'the first 1,000' : pairs.length}.{listed.length > 0 && ' Largest changes:'}
            </p>
            <ul>
              {listed.map(({ skillId, parameter, before, after }) => (
                <li key={`${skillId} ${parameter}`}>
                  <bdi>{getSkillName(skillId)}</bdi>, {parameterTexts[parameter]}: {formatPercent(before)} →{' '}
                  {formatPercent(after)}
                </li>
              ))}
            </ul>
          </>
        );
      }}
    </Loaded>
  );
}

/** A fit compares its result with the version on which it is based, on the same answers. */
function describeAccuracy(from: number, to: number, versions: ModelVersionPage['versions']): string {
  const fit = versions.find(
    ({ action, version, based_on }) =>
      action === 'fit' &&
      Math.max(version, based_on) === Math.max(from, to) &&
      Math.min(version, based_on) === Math.min(from, to),
  );
  if (fit?.old_log_loss == null || fit.new_log_loss === null)
    return 'Accuracy: these two versions were never compared on the same answers.';
  const losses = [fit.old_log_loss, fit.new_log_loss].map(formatDecimal(4));
  const [now, then] = fit.version === from ? losses.reverse() : losses;
  return `Accuracy: log loss ${now ?? missingText} → ${then ?? missingText} on answers that the fit of version ${fit.version} did not use. Lower is better.`;
}
