/* SPDX-License-Identifier: MIT */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/table_read.h"

static char path[] = "/tmp/fornix-table-XXXXXX";

static int read_back(const char *text, fx_error *err, fx_array **values, fx_array **lengths)
{
	FILE *f;
	int fd, status;

	strcpy(path + strlen(path) - 6, "XXXXXX");
	fd = mkstemp(path);
	f = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (!f)
		CU_FAIL_FATAL("no temporary file");
	fputs(text, f);
	fclose(f);
	status = fxi_table_read(path, err, values, lengths);
	unlink(path);
	return status;
}

static void reads(void)
{
	fx_array *v, *l;

	CU_ASSERT_EQUAL_FATAL(read_back("# kx ky\n1 2\n3,\t4 # end\n\n\n5;6\r\n# between, no new block\n7 -8e-1", NULL, &v, &l), FX_OK);
	CU_ASSERT_EQUAL(v->dims[0], 2);
	CU_ASSERT_EQUAL_FATAL(v->dims[1], 4);
	CU_ASSERT_EQUAL(FX_F64_OF(v)[3], 4);
	CU_ASSERT_EQUAL(FX_F64_OF(v)[7], -0.8);
	CU_ASSERT_EQUAL_FATAL(l->dims[0], 2);
	CU_ASSERT_EQUAL(((int32_t *)l->data)[0], 2);
	CU_ASSERT_EQUAL(((int32_t *)l->data)[1], 2);
	fx_array_unref(v);
	fx_array_unref(l);
}

/* Tables of gradients: as many columns as there are volumes, and nan where there is no direction. */
static void long_rows_and_nan(void)
{
	char *text = malloc(20000), *at = text;
	fx_array *v, *l;

	for (int i = 0; i < 3000; i++)
		at += sprintf(at, "%d ", i % 1000);
	CU_ASSERT_EQUAL_FATAL(read_back(text, NULL, &v, &l), FX_OK);
	CU_ASSERT(v->dims[0] == 3000 && v->dims[1] == 1 && FX_F64_OF(v)[2999] == 999);
	fx_array_unref(v);
	fx_array_unref(l);
	free(text);
	CU_ASSERT_EQUAL_FATAL(read_back("nan NaN -nan\n1 0 0\n", NULL, &v, &l), FX_OK);
	CU_ASSERT(isnan(FX_F64_OF(v)[0]) && isnan(FX_F64_OF(v)[2]) && FX_F64_OF(v)[3] == 1);
	fx_array_unref(v);
	fx_array_unref(l);
}

static void refuses(void)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{"1 2\n3 4 5\n", "line 2"}, {"1 2\ninf 3\n", "line 2"}, {"kx ky\n", "kx"}, {"", "no numbers"}, {"1.5.2 3", "1.5.2"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		fx_error err = {0};
		fx_array *v, *l;

		CU_ASSERT_EQUAL(read_back(cases[i].text, &err, &v, &l), FX_EDATA);
		CU_ASSERT_PTR_NULL(v);
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, cases[i].says));
	}
}

static CU_TestInfo tests[] = {
	{"reads text", reads},
	{"long rows and nan", long_rows_and_nan},
	{"refuses what is no table", refuses},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_table_read = {"table_read", NULL, NULL, NULL, NULL, tests};
