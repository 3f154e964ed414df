/* device/ptx/modifiers.c - every word that may follow an opcode, as one table. */
#include <string.h>

#include "device/ptx/front.h"

static const struct {
    const char *name;
    unsigned bits;
} types[PTX_TYPE_COUNT] = {
#define TYPE(id, name, bits) {name, bits},
    PTX_TYPE_LIST(TYPE)
#undef TYPE
};

const char *ptx_type_name(enum ptx_type t) {
    return t < PTX_TYPE_COUNT ? types[t].name : "none";
}

unsigned ptx_type_bits(enum ptx_type t) {
    return t < PTX_TYPE_COUNT ? types[t].bits : 0;
}

enum ptx_type ptx_type_of(const struct token *word) {
    for (int t = 0; t < PTX_TYPE_COUNT; t++)
        if (word->len == strlen(types[t].name) + 1 &&
            memcmp(word->text + 1, types[t].name, word->len - 1) == 0)
            return (enum ptx_type)t;
    return PTX_NOTYPE;
}

const char *ptx_mod_kind_name(enum ptx_mod_kind kind) {
    static const char *const names[MOD_KINDS] = {
#define MOD(id) #id,
        PTX_MOD_LIST(MOD)
#undef MOD
    };
    return names[kind];
}

/* One word may stand for several kinds; the instruction's row decides which. */
static const struct word {
    const char *text;
    enum ptx_mod_kind kind;
    int value;
} words[] = {
    {".rn", MOD_RND, RND_RN},           {".rz", MOD_RND, RND_RZ},
    {".rm", MOD_RND, RND_RM},           {".rp", MOD_RND, RND_RP},
    {".rni", MOD_RND, RND_RNI},         {".rzi", MOD_RND, RND_RZI},
    {".rmi", MOD_RND, RND_RMI},         {".rpi", MOD_RND, RND_RPI},
    {".rn", MOD_RN, RND_RN},            {".rna", MOD_RNA, RND_RNA},
    {".rn", MOD_RNZ, RND_RN},           {".rz", MOD_RNZ, RND_RZ},
    {".rn", MOD_FRND, RND_RN},          {".rz", MOD_FRND, RND_RZ},
    {".rm", MOD_FRND, RND_RM},          {".rp", MOD_FRND, RND_RP},
    {".rni", MOD_IRND, RND_RNI},        {".rzi", MOD_IRND, RND_RZI},
    {".rmi", MOD_IRND, RND_RMI},        {".rpi", MOD_IRND, RND_RPI},
    {".relu", MOD_RELU, 1},             {".satfinite", MOD_SATFINITE, 1},
    {".xorsign", MOD_XORSIGN, 1},       {".abs", MOD_ABS, 1},
    {".ftz", MOD_FTZ, 1},               {".sat", MOD_SAT, 1},
    {".approx", MOD_APPROX, 1},         {".full", MOD_FULL, 1},
    {".NaN", MOD_NAN, 1},               {".to", MOD_TO, 1},
    {".eq", MOD_CMP, CMP_EQ},           {".ne", MOD_CMP, CMP_NE},
    {".lt", MOD_CMP, CMP_LT},           {".le", MOD_CMP, CMP_LE},
    {".gt", MOD_CMP, CMP_GT},           {".ge", MOD_CMP, CMP_GE},
    {".lo", MOD_CMP, CMP_LO},           {".ls", MOD_CMP, CMP_LS},
    {".hi", MOD_CMP, CMP_HI},           {".hs", MOD_CMP, CMP_HS},
    {".equ", MOD_CMP, CMP_EQU},         {".neu", MOD_CMP, CMP_NEU},
    {".ltu", MOD_CMP, CMP_LTU},         {".leu", MOD_CMP, CMP_LEU},
    {".gtu", MOD_CMP, CMP_GTU},         {".geu", MOD_CMP, CMP_GEU},
    {".num", MOD_CMP, CMP_NUM},         {".nan", MOD_CMP, CMP_NAN},
    {".and", MOD_BOOL, BOOL_AND},       {".or", MOD_BOOL, BOOL_OR},
    {".xor", MOD_BOOL, BOOL_XOR},
    {".param", MOD_SPACE, SPACE_PARAM}, {".param::entry", MOD_SPACE, SPACE_PARAM},
    {".global", MOD_SPACE, SPACE_GLOBAL},
    {".shared", MOD_SPACE, SPACE_SHARED}, {".shared::cta", MOD_SPACE, SPACE_SHARED},
    {".shared::cluster", MOD_SPACE, SPACE_CLUSTER},
    {".local", MOD_SPACE, SPACE_LOCAL}, {".const", MOD_SPACE, SPACE_CONST},
    {".v2", MOD_VEC, 2},                {".v4", MOD_VEC, 4},
    {".v8", MOD_VEC, 8},
    {".lo", MOD_HALF, HALF_LO},         {".hi", MOD_HALF, HALF_HI},
    {".wide", MOD_HALF_WIDE, HALF_WIDE},
    {".up", MOD_MODE, MODE_UP},         {".down", MOD_MODE, MODE_DOWN},
    {".bfly", MOD_MODE, MODE_BFLY},     {".idx", MOD_MODE, MODE_IDX},
    {".all", MOD_MODE, MODE_ALL},       {".any", MOD_MODE, MODE_ANY},
    {".uni", MOD_MODE, MODE_UNI},       {".ballot", MOD_MODE, MODE_BALLOT},
    {".l", MOD_MODE, MODE_L},           {".r", MOD_MODE, MODE_R},
    {".finite", MOD_MODE, MODE_FINITE}, {".infinite", MOD_MODE, MODE_INFINITE},
    {".number", MOD_MODE, MODE_NUMBER}, {".notanumber", MOD_MODE, MODE_NOTANUMBER},
    {".normal", MOD_MODE, MODE_NORMAL}, {".subnormal", MOD_MODE, MODE_SUBNORMAL},
    {".clamp", MOD_WRAP, 0},            {".wrap", MOD_WRAP, 1},
    {".add", MOD_ATOM, ATOM_ADD},       {".min", MOD_ATOM, ATOM_MIN},
    {".max", MOD_ATOM, ATOM_MAX},       {".exch", MOD_ATOM, ATOM_EXCH},
    {".inc", MOD_ATOM, ATOM_INC},       {".dec", MOD_ATOM, ATOM_DEC},
    {".and", MOD_ATOM, ATOM_AND},       {".or", MOD_ATOM, ATOM_OR},
    {".xor", MOD_ATOM, ATOM_XOR},       {".popc", MOD_ATOM, ATOM_POPC},
    {".cas", MOD_ATOM_CAS, ATOM_CAS},
    {".sync", MOD_BAR, BAR_SYNC},       {".arrive", MOD_BAR, BAR_ARRIVE},
    {".sync", MOD_SYNC, 1},             {".uni", MOD_UNI, 1},
    {".aligned", MOD_ALIGNED, 1},       {".cta", MOD_CTA, 1},
    {".volatile", MOD_VOLATILE, 1},
    {".cta", MOD_SCOPE, 1},             {".gpu", MOD_SCOPE, 1},
    {".sys", MOD_SCOPE, 1},             {".cluster", MOD_SCOPE, 1},
    {".gl", MOD_SCOPE, 1},
    {".weak", MOD_ORDER, ORDER_WEAK},   {".relaxed", MOD_ORDER, ORDER_RELAXED},
    {".acquire", MOD_ORDER, ORDER_ACQUIRE}, {".release", MOD_ORDER, ORDER_RELEASE},
    {".acq_rel", MOD_ORDER, ORDER_ACQ_REL}, {".sc", MOD_ORDER, ORDER_SC},
    {".m8n8", MOD_SHAPE, 1},            {".trans", MOD_TRANS, 1},
    {".x1", MOD_MATRICES, 1},           {".x2", MOD_MATRICES, 2},
    {".x4", MOD_MATRICES, 4},           {".global", MOD_FROM, 1},
    {".L2::cache_hint", MOD_HINT, 1},
    {".cc", MOD_CC, 1},                 {".shiftamt", MOD_SHIFTAMT, 1},
    {".clamp", MOD_LIMIT, 0},           {".wrap", MOD_LIMIT, 1},
    {".f4e", MOD_PRMT, MODE_F4E},       {".b4e", MOD_PRMT, MODE_B4E},
    {".rc8", MOD_PRMT, MODE_RC8},       {".ecl", MOD_PRMT, MODE_ECL},
    {".ecr", MOD_PRMT, MODE_ECR},       {".rc16", MOD_PRMT, MODE_RC16},
    {".noftz", MOD_NOFTZ, 1},           {".red", MOD_BARRED, BAR_RED},
    {".shared::cta", MOD_FROM_SHARED, 1}, {".noinc", MOD_NOINC, 1},
    {".mbarrier::complete_tx::bytes", MOD_COMPLETE, 1},
    {".multicast::cluster", MOD_MULTICAST, 1},
    {".bulk_group", MOD_GROUP, 1},      {".read", MOD_READ, 1},
    {".row", MOD_ROW, 1},               {".col", MOD_COL, 1},
    {".row", MOD_LAYOUT, 1},            {".col", MOD_LAYOUT, 2},
    {".1d", MOD_DIM, 1},                {".2d", MOD_DIM, 2},
    {".3d", MOD_DIM, 3},                {".4d", MOD_DIM, 4},
    {".5d", MOD_DIM, 5},                {".tile", MOD_TILE, 1},
    {".tensormap", MOD_TENSORMAP, 1},
    {".sync_restrict::shared::cta", MOD_RESTRICT, 1},
    {".sync_restrict::shared::cluster", MOD_RESTRICT, 1},
    /* Caching never changes a value in the emulator's memory, which is one coherent array. */
    {".ca", MOD_CACHE, 1},              {".cg", MOD_CACHE, 1},
    {".cs", MOD_CACHE, 1},              {".lu", MOD_CACHE, 1},
    {".cv", MOD_CACHE, 1},              {".wb", MOD_CACHE, 1},
    {".wt", MOD_CACHE, 1},              {".nc", MOD_CACHE, 1},
    {".L1", MOD_CACHE, 1},              {".L2", MOD_CACHE, 1},
    {".L1::evict_normal", MOD_CACHE, 1},  {".L1::evict_unchanged", MOD_CACHE, 1},
    {".L1::evict_first", MOD_CACHE, 1},   {".L1::evict_last", MOD_CACHE, 1},
    {".L1::no_allocate", MOD_CACHE, 1},   {".L2::evict_normal", MOD_CACHE, 1},
    {".L2::evict_first", MOD_CACHE, 1},   {".L2::evict_last", MOD_CACHE, 1},
    {".L2::evict_unchanged", MOD_CACHE, 1},
    {".L2::64B", MOD_CACHE, 1},           {".L2::128B", MOD_CACHE, 1},
    {".L2::256B", MOD_CACHE, 1},
};

#define WORD_COUNT (sizeof words / sizeof *words)

/* ".m64n256k16" */
static bool shape_word(struct ptx_mods *mods, const struct token *word) {
    static const char names[] = "mnk";
    uint16_t *const size[] = {&mods->m, &mods->n, &mods->k};
    const char *at = word->text + 1, *end = word->text + word->len;
    uint16_t value[3];
    for (int i = 0; i < 3; i++) {
        if (at == end || *at++ != names[i])
            return false;
        unsigned v = 0, digits = 0;
        for (; at < end && *at >= '0' && *at <= '9' && digits < 4; at++, digits++)
            v = v * 10 + (unsigned)(*at - '0');
        if (!digits)
            return false;
        value[i] = (uint16_t)v;
    }
    for (int i = 0; i < 3 && at == end; i++)
        *size[i] = value[i];
    return at == end;
}

bool ptx_mod_known(const struct token *word) {
    if (shape_word(&(struct ptx_mods){0}, word))
        return true;
    for (size_t i = 0; i < WORD_COUNT; i++)
        if (token_is(word, words[i].text))
            return true;
    return false;
}

/* .l/.r and .clamp/.wrap come as two words and make one mode of shf. */
static void apply_wrap(struct ptx_mods *mods, bool wrap) {
    if (mods->mode == MODE_L)
        mods->mode = wrap ? MODE_WRAP_L : MODE_CLAMP_L;
    else if (mods->mode == MODE_R)
        mods->mode = wrap ? MODE_WRAP_R : MODE_CLAMP_R;
}

static void apply(struct ptx_mods *mods, enum ptx_mod_kind kind, int value) {
    switch (kind) {
    case MOD_RND: case MOD_RN: case MOD_RNA: case MOD_RNZ: case MOD_FRND: case MOD_IRND:
        mods->rnd = (enum ptx_rnd)value;
        break;
    case MOD_ORDER: mods->order = (enum ptx_order)value; break;
    case MOD_MATRICES: mods->vec = (uint8_t)value; break;
    case MOD_TRANS: mods->trans = true; break;
    case MOD_RELU: mods->relu = true; break;
    case MOD_SATFINITE: mods->satfinite = true; break;
    case MOD_XORSIGN: mods->xorsign = true; break;
    case MOD_ABS: mods->abs = true; break; /* also the second half of .xorsign.abs */
    case MOD_FTZ: mods->ftz = true; break;
    case MOD_SAT: mods->sat = true; break;
    case MOD_APPROX: mods->approx = true; break;
    case MOD_FULL: mods->full = true; break;
    case MOD_CMP: mods->cmp = (enum ptx_cmp)value; break;
    case MOD_BOOL: mods->boolop = (enum ptx_bool)value; break;
    case MOD_SPACE: mods->space = (enum ptx_space)value; break;
    case MOD_VEC: mods->vec = (uint8_t)value; break;
    case MOD_HALF: case MOD_HALF_WIDE: mods->half = (enum ptx_half)value; break;
    case MOD_CC: mods->cc = true; break;
    case MOD_LIMIT: mods->wrap = value != 0; break;
    case MOD_MODE: case MOD_PRMT: mods->mode = (enum ptx_mode)value; break;
    case MOD_WRAP: apply_wrap(mods, value != 0); break;
    case MOD_ATOM: case MOD_ATOM_CAS: mods->atom = (enum ptx_atom)value; break;
    case MOD_NOINC: mods->noinc = true; break;
    case MOD_NOFTZ: mods->noftz = true; break;
    case MOD_HINT: mods->hint = true; break;
    case MOD_MULTICAST: mods->multicast = true; break;
    case MOD_BAR: case MOD_BARRED: mods->bar = (enum ptx_bar)value; break;
    case MOD_LAYOUT: mods->layout = (uint8_t)(mods->layout << 2 | value); break;
    case MOD_DIM: mods->dim = (uint8_t)value; break;
    case MOD_NAN: mods->nan = true; break;
    case MOD_TO: mods->to = true; break;
    case MOD_VOLATILE: mods->volatile_ = true; break;
    case MOD_UNI: case MOD_SYNC: case MOD_ALIGNED: case MOD_CACHE: case MOD_SCOPE:
    case MOD_CTA: case MOD_FROM: case MOD_SHAPE: case MOD_FROM_SHARED:
    case MOD_SHIFTAMT: case MOD_COMPLETE: case MOD_GROUP: case MOD_READ: case MOD_MNK: case MOD_ROW: case MOD_COL:
    case MOD_TILE: case MOD_RESTRICT: case MOD_TENSORMAP: case MOD_TYPES3: case MOD_TYPES4:
    case MOD_KINDS:
        break; /* no effect on what the emulator computes */
    }
}

uint64_t ptx_mod_apply(struct ptx_mods *mods, const struct token *word, uint64_t allowed) {
    uint64_t shape = UINT64_C(1) << MOD_MNK;
    if ((allowed & shape) && shape_word(mods, word))
        return shape;
    for (size_t i = 0; i < WORD_COUNT; i++) {
        uint64_t bit = UINT64_C(1) << words[i].kind;
        if ((allowed & bit) && token_is(word, words[i].text)) {
            apply(mods, words[i].kind, words[i].value);
            return bit;
        }
    }
    return 0;
}
