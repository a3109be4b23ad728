/* SPDX-License-Identifier: MIT */
/* main.c - runs one suite (--suite NAME) or all; the exit status tells whether every assertion held. */
#include <CUnit/Basic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "suites.h"

int main(int argc, char **argv)
{
	const char *wanted = NULL;
	unsigned failures, n_suites = 0;

	if (argc == 3 && strcmp(argv[1], "--suite") == 0)
		wanted = argv[2];
	else if (argc != 1) {
		fprintf(stderr, "usage: run_tests [--suite NAME]\n");
		return 2;
	}
	if (CU_initialize_registry() != CUE_SUCCESS)
		return 1;
	for (size_t i = 0; i < sizeof suites / sizeof suites[0]; i++) {
		CU_SuiteInfo list[2] = {*suites[i].suite, CU_SUITE_INFO_NULL};

		if (wanted && strcmp(wanted, suites[i].name) != 0)
			continue;
		if (CU_register_suites(list) != CUE_SUCCESS) {
			fprintf(stderr, "cannot register %s: %s\n", suites[i].name, CU_get_error_msg());
			return 1;
		}
		n_suites++;
	}
	if (n_suites == 0) {
		fprintf(stderr, "no suite is called %s\n", wanted ? wanted : "anything");
		return 1;
	}
	CU_basic_set_mode(CU_BRM_VERBOSE);
	CU_basic_run_tests();
	failures = CU_get_number_of_failures() + CU_get_number_of_suites_failed();
	if (CU_get_number_of_tests_run() == 0)
		failures++;
	CU_cleanup_registry();
	return failures ? 1 : 0;
}
