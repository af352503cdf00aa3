-- SPDX-License-Identifier: Apache-2.0
-- What makes values that do not depend on what the input contains.

return {
  gradient "Bernoulli" { false },
  gradient "EyeLike" { false },
  gradient "Multinomial" { false },
  gradient "RandomNormalLike" { false },
  gradient "RandomUniformLike" { false },
}
