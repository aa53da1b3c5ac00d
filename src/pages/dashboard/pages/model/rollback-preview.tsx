import type { ModelVersionPage } from '../../../../client/types.js';
import { formatDecimal, formatPercent, pluralize } from '../../base/format.js';
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
    ({ action, version, based_on }) => action === 'fit' && version === from && based_on === to,
  );
  return fit === undefined
    ? 'Accuracy: no fit compared these two versions on the same answers.'
    : `Accuracy: log loss ${formatDecimal(4)(fit.new_log_loss)} → ${formatDecimal(4)(fit.old_log_loss)} on answers that the fit did not use. Lower is better.`;
}
